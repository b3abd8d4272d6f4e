package dashboard

// limitsPage is the data of the template limits.
type limitsPage struct{ Groups []LimitGroup }

// LimitGroup is a group of related limits of the service.
type LimitGroup struct {
	Title  string
	Public bool // they concern clients, so the documentation lists them
	Limits []Limit
}

// Limit is one entry of the configuration with its current use.
type Limit struct {
	Entry   string
	Meaning string
	Most    string
	Now     string // empty if nothing is counted
}

func (v *visit) limits() error {
	return v.show(200, "limits", "Limits", limitsPage{v.dashboard.config.Limits()})
}
