"""Judgement: claims, decision rules, controls, runner, report and the command line."""
