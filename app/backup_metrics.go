package app

import (
	"log/slog"

	"ashlar/app/backup"
	"ashlar/app/store"
)

// collectBackups collects how the backups of the stores went that are in the data directory.
func (c *serviceCollector) collectBackups(to scrape) {
	if c.service.config.Data == "" {
		return
	}
	records, err := backup.Records(c.service.config.Data)
	if c.changed("backups", err) {
		slog.Error("some metrics of backups are left out", "error", err)
	}
	to.gauge(c.gauges.backupsReadable, truth(err == nil))
	for _, r := range records {
		for name, outcome := range r.Stores {
			if !store.Dir(c.service.config.Data).HasStore(name) {
				continue
			}
			to.counter(c.gauges.backups, uint64(outcome.Good), r.Target, name)
			to.gauge(c.gauges.backupFailures, float64(outcome.Failures), r.Target, name)
			if !outcome.Made.IsZero() {
				to.gauge(c.gauges.backedUp, float64(outcome.Made.Unix()), r.Target, name)
			}
			if outcome.Good > 0 { // records of older versions do not have these
				to.gauge(c.gauges.backupSize, float64(outcome.Bytes), r.Target, name)
				to.gauge(c.gauges.backupTime, outcome.Seconds, r.Target, name)
			}
		}
	}
}
