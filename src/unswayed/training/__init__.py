"""The one loop, and the folder that keeps what it did."""
