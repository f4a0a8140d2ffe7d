"""Comparing theory with a measured network: one module a target, each with its own table, picture and receipt."""
