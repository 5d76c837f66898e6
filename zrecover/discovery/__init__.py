"""zrecover.discovery"""
