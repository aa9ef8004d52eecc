"""The discovery extension of ACP, agent's side: the IDE's catalogue, the bridge to its tools, running calls."""
