"""What `make experiments` and `make bench` share.

ground   the MySQL that they run on, and what it and the machine are
table    how figures are shown
options  what their commands take
"""
