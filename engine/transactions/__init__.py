"""Transactions: half messages, their outcome, and the questions that producers are asked.
`engine/services/transactions.py` has its verbs; it sends through the window as senders do.
"""
