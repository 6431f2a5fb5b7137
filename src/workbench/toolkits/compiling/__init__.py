"""Descriptions of services in the form of OpenAPI, compiled into tools and operations."""
