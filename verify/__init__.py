"""Judgement: claims, decision rules, controls, runner, report and the command line."""

from .claim import OURS, REPORTED, Case, Claim, Control, Level, claim

__all__ = ["OURS", "REPORTED", "Case", "Claim", "Control", "Level", "claim"]
