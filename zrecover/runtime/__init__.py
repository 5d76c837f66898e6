"""zrecover.runtime"""
