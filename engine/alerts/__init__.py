"""Alerts: policies on what the meters say, judged once a minute by one worker, and told by webhook
and mail.
"""
