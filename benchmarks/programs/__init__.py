"""What runs in other processes: servers of ours, and bare ones that move the same bytes."""
