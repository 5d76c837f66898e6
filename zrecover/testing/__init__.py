"""zrecover.testing"""
