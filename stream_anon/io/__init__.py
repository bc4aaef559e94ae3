"""Where records come from and go to: a transport protocol, Kafka and memory behind it, a broker for trials."""
