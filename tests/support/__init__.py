"""What tests share: a database, builders, notices, threads that meet at a barrier."""
