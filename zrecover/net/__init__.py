"""zrecover.net"""
