"""Lockstep: orders, payments and stock that never disagree.

The data's way: functions -> payments -> orders -> inventory -> messaging, db -> the small modules
beside this file. Nothing imports against that direction (tests/contract/test_arrows.py).
"""
