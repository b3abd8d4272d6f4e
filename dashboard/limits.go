package dashboard

// limitsPage is what the template of the same name is given.
type limitsPage struct{ Groups []LimitGroup }

// LimitGroup is limits of the service that belong together.
type LimitGroup struct {
	Title  string
	Limits []Limit
}

// Limit is one entry of the configuration, and how much of it is taken.
type Limit struct {
	Entry   string
	Meaning string
	Most    string
	Now     string // empty where nothing is counted
}

func (v *visit) limits() error {
	return v.show(200, "limits", "Limits", limitsPage{v.dashboard.config.Limits()})
}
