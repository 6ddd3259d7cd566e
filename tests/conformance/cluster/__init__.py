"""Several servers: registration at name servers, master and slave."""
