package networks

import "ashlar/dashboard/site"

// limitsPage is the data of the template limits.
type limitsPage struct{ Groups []site.LimitGroup }

func showLimits(v *site.Visit) error {
	return v.Show(200, "limits", "Limits", limitsPage{v.Config.Limits()})
}
