// Saved pages for the test beside this folder. Only their data is used.
module pages

go 1.26

require (
	github.com/go-shiori/go-readability v0.0.0-20251205110129-5db1dc9836f0
	github.com/markusmobius/go-trafilatura v1.12.2
)
