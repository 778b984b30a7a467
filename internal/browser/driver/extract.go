package driver

import (
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/extract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// typed gives the texts that the page's world found their types.
func typed(revision string, u site.URL, q observe.ExtractQuery, seen pagejs.Collection) *observe.Extraction {
	found := extract.Found{
		Status: seen.Status, SourceName: seen.SourceName, SourceNodes: seen.SourceNodes, SourceLimit: seen.SourceLimit,
		RowNodes: seen.RowNodes, RowLimit: seen.RowLimit, OmittedRows: seen.OmittedRows,
	}
	for _, cells := range seen.Rows {
		row := make([]*extract.Text, len(cells))
		for i, c := range cells {
			if c != nil {
				row[i] = &extract.Text{Text: c.Text, Truncated: c.Truncated}
			}
		}
		found.Rows = append(found.Rows, row)
	}
	x := extract.Build(revision, u, q, found)
	return &x
}
