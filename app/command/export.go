package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"ashlar/app"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// ErrFormat means that a network's family cannot export in a format.
var ErrFormat = errors.New("cannot export in this format")

// Export is ashlar export.
type Export struct {
	Data string
	family.Export
}

// Run writes blocks of the network to files, and shows its progress on out.
func (e Export) Run(ctx context.Context, out *os.File) (err error) {
	if err := checkName(e.Network); err != nil {
		return err
	}
	data := store.Dir(e.Data)
	if err := data.CheckThere(); err != nil {
		return err
	}
	if data.AmongNetworks(e.Folder) {
		return fmt.Errorf("folder %q is where the data directory %s has its networks (want a folder elsewhere)", e.Folder, data)
	}
	opened, f, err := app.OpenStore(ctx, data, e.Network, kv.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	exporter, ok := f.(family.Exporter)
	if !ok {
		return fmt.Errorf("network %s: %w: networks of family %s are not exported", e.Network, ErrFormat, f.Name())
	}
	if formats := exporter.Formats(); !slices.Contains(formats, e.Format) {
		return fmt.Errorf("network %s: %w: unknown format %q (want %s)", e.Network, ErrFormat, e.Format, strings.Join(formats, " or "))
	}
	under, err := exporter.Export(ctx, opened, e.Export)
	if err != nil {
		return fmt.Errorf("network %s: %w", e.Network, err)
	}
	first, last := under.Blocks()
	bar := newProgress(out, "exporting", exportStatus(under))
	err = under.Run(ctx)
	bar.end()
	files, exported := under.Progress()
	if err != nil {
		slog.Info("export stopped", "network", e.Network, "files", files, "took", bar.took())
		return fmt.Errorf("network %s: %w", e.Network, err)
	}
	slog.Info("exported", "network", e.Network, "format", e.Format, "files", files, "first", first, "last", exported,
		"blocks", last-first+1, "folder", e.Folder, "took", bar.took())
	return nil
}

// exportStatus returns how many blocks of an export are in complete files.
func exportStatus(under family.Exporting) func() (status, bool) {
	began := time.Now()
	first, last := under.Blocks()
	return func() (status, bool) {
		files, exported := under.Progress()
		share := 0.0
		if files > 0 {
			share = float64(exported-first+1) / float64(last-first+1)
		}
		return status{
			part: fmt.Sprintf("blocks %d to %d", first, last), kind: "range", since: began, share: share,
			brief: family.Counted(uint64(files), "file"), fields: []any{"files", files},
		}, true
	}
}
