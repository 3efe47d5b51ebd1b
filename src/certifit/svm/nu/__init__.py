"""Machines whose parameter ν bounds the shares of errors and of support vectors."""
