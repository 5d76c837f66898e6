"""zrecover.hooks"""
