package dashboard

import (
	"ashlar/dashboard/activity"
	"ashlar/dashboard/console"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/manual"
	"ashlar/dashboard/networks"
	"ashlar/dashboard/people"
	"ashlar/dashboard/profile"
	"ashlar/dashboard/signin"
	"ashlar/dashboard/site"
	"maps"
	"net/http"
	"slices"
)

// New returns the handler of all pages, or an error that names a missing field of config.
func New(config site.Config) (http.Handler, error) {
	all := slices.Concat(
		[]site.Page{site.ForAll("GET /{$}", first)},
		signin.Pages(), manual.Pages(), keys.Pages(), activity.Pages(), networks.Pages(), console.Pages(), profile.Pages(), people.Pages(),
	)
	handlers := make(map[string]http.Handler)
	maps.Copy(handlers, keys.API(&config))
	return site.New(&config, all, handlers)
}
