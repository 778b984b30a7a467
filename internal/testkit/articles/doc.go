// Package articles holds the readable text of pages that people really wrote
// against what their keepers say is in them (TEXT-01, TEXT-03, TEXT-04). The
// pages are data of two Go modules that testdata/go.mod pins.
package articles
