"""HTTP: from API Gateway's event to the response, checked, answered, and encoded."""
