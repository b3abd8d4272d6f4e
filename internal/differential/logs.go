package differential

// filter returns a filter for eth_getLogs.
func (g *generator) filter() object {
	f := object{}
	switch g.r.IntN(10) {
	case 0, 1:
		f["blockHash"] = g.blockHash()
		if g.chance(10) {
			f["fromBlock"] = quantity(g.number())
		}
	case 2:
		if g.chance(50) {
			f["fromBlock"] = g.blockNumber()
		} else {
			f["toBlock"] = g.blockNumber()
		}
	case 3:
		f["fromBlock"], f["toBlock"] = g.blockNumber(), g.blockNumber()
	case 4:
		f["fromBlock"], f["toBlock"] = g.earliest(), "latest"
	case 5:
		n := quantity(g.number())
		f["fromBlock"], f["toBlock"] = n, n
	case 6: // neither: the latest block
	default:
		from := g.number()
		f["fromBlock"], f["toBlock"] = quantity(from), quantity(from+g.r.Uint64N(min(50, g.c.Head()-from+1)))
	}
	switch g.r.IntN(6) {
	case 0, 1:
		f["address"] = pick(g, g.c.Emitters)
	case 2:
		f["address"] = []any{pick(g, g.c.Emitters), g.address(), pick(g, g.c.Emitters)}
	case 3:
		f["address"] = []any{}
	}
	if g.chance(70) {
		f["topics"] = g.topics()
	}
	return f
}

func (g *generator) topics() []any {
	topics := []any{}
	for at := range g.r.IntN(5) {
		switch g.r.IntN(5) {
		case 0, 1:
			topics = append(topics, nil)
		case 2:
			topics = append(topics, []any{g.topic(at), g.topic(at), g.topic(at)})
		case 3:
			topics = append(topics, g.topic(at))
		case 4:
			topics = append(topics, []any{})
		}
	}
	if g.chance(2) {
		topics = append(topics, nil, nil, nil, nil, nil)
	}
	return topics
}

func (g *generator) topic(at int) any {
	if len(g.c.Topics[at]) == 0 || g.chance(5) {
		return g.hash()
	}
	return pick(g, g.c.Topics[at])
}
