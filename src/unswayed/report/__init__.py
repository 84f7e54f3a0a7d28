"""What people look at: tables and charts, drawn from run folders."""
