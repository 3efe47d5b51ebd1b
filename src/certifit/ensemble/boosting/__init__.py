"""Stagewise additive modelling: a loss, and trees that lower it one after another."""
