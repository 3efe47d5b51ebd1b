"""Principal components in spite of gross errors: principal component pursuit and trimming."""
