package dashboard

import (
	"maps"
	"net/http"
	"slices"

	"ashlar/dashboard/activity"
	"ashlar/dashboard/api"
	"ashlar/dashboard/console"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/manual"
	"ashlar/dashboard/networks"
	"ashlar/dashboard/people"
	"ashlar/dashboard/profile"
	"ashlar/dashboard/signin"
	"ashlar/dashboard/site"
	"ashlar/dashboard/teams"
)

// New returns the handler of all pages, or an error that names a missing field of config.
func New(config site.Config) (http.Handler, error) {
	handlers := make(map[string]http.Handler)
	maps.Copy(handlers, api.Handlers(&config))
	return site.New(&config, pages(), handlers)
}

// pages lists all pages.
func pages() []site.Page {
	return slices.Concat(
		[]site.Page{site.ForAll("GET /{$}", first)},
		signin.Pages(), manual.Pages(), keys.Pages(), activity.Pages(), networks.Pages(), console.Pages(), profile.Pages(), teams.Pages(), people.Pages(),
	)
}
