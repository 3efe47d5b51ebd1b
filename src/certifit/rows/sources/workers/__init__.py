"""What is done in the processes of a cluster's workers beside adding up rows."""
