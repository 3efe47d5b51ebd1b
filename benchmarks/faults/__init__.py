"""Faults tried and survived: killed programs, lost workers, full disks, damaged and hostile files."""
