"""zrecover.cli"""
