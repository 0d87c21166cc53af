"""The notation of the server side: see scripts/lua."""
