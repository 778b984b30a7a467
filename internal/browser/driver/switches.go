package driver

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// features are off in one list, because a second switch would replace the
// first. The reasons: requests to the vendor, copies of a page that no
// request shows (back/forward cache, prerendering), spare processes, and that
// some builds would not load the rules of transport.go.
var features = []string{
	"AimEnabled", "AutofillServerCommunication", "BackForwardCache", "CertificateTransparencyComponentUpdater",
	"DestroyProfileOnBrowserClose", "DialMediaRouteProvider", "DisableDisableExtensionsExceptCommandLineSwitch", "GlobalMediaControls", "InterestFeedContentSuggestions",
	"LensOverlay", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationGuideModelDownloading", "OptimizationHints",
	"OptimizationHintsFetching", "OptimizationTargetPrediction", "PaintHolding", "PreconnectToSearch",
	"PreloadTopChromeWebUI", "Prerender2", "SegmentationPlatform", "SpareRendererForSitePerProcess", "Translate",
}

// switches never contain --no-sandbox, a user agent, or a debugging port
// (HEAD-02). Two vendor hosts cannot be silenced by any switch or preference;
// they are pointed at reserved names that the proxy refuses.
func (c Config) switches() ([]string, error) {
	list := []string{
		"--remote-debugging-pipe",
		"--user-data-dir=" + filepath.Join(c.Home, "profile"),
		"--window-size=1280,800",
		"--no-first-run", "--no-default-browser-check", "--no-pings",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
		"--disable-extensions-except=" + c.rulesDir(), "--disable-component-extensions-with-background-pages", "--disable-domain-reliability",
		"--disable-client-side-phishing-detection", "--disable-breakpad", "--disable-quic",
		"--disable-search-engine-choice-screen", "--disable-background-timer-throttling",
		"--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
		"--metrics-recording-only", "--password-store=basic",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--gaia-url=https://accounts.invalid", "--component-updater=url-source=https://updates.invalid/",
		"--gcm-checkin-url=about:blank",
		"--proxy-server=http://" + c.Proxy, "--proxy-bypass-list=<-loopback>",
		"--disable-features=" + strings.Join(features, ","),
	}
	if c.Headed {
		list = append(list, "--ozone-platform=x11")
	} else {
		list = append(list, "--headless=new")
	}
	if c.TrustedCA != nil && c.PolicyDir == "" {
		ca, err := c.authority()
		if err != nil {
			return nil, err
		}
		key := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
		list = append(list, "--ignore-certificate-errors-spki-list="+base64.StdEncoding.EncodeToString(key[:]))
	}
	return append(list, "about:blank"), nil
}

func (c Config) authority() (*x509.Certificate, error) {
	block, _ := pem.Decode(c.TrustedCA)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("driver: the trusted authority is not a PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// preferences of the fresh profile: nothing is fetched ahead of a navigation,
// nothing is offered to be saved, and every permission is denied (DENY-01).
func preferences() ([]byte, error) {
	deny := map[string]int{}
	for _, kind := range []string{
		"ar", "automatic_downloads", "bluetooth_guard", "bluetooth_scanning", "clipboard", "file_system_write_guard",
		"geolocation", "hid_guard", "idle_detection", "local_fonts", "local_network_access", "media_stream_camera",
		"media_stream_mic", "midi_sysex", "notifications", "payment_handler", "popups", "sensors", "serial_guard",
		"usb_guard", "vr", "window_placement",
	} {
		deny[kind] = 2
	}
	return json.Marshal(map[string]any{
		"net":                           map[string]any{"network_prediction_options": 2},
		"webrtc":                        map[string]any{"ip_handling_policy": "disable_non_proxied_udp"},
		"credentials_enable_service":    false,
		"credentials_enable_autosignin": false,
		"autofill":                      map[string]any{"enabled": false, "profile_enabled": false, "credit_card_enabled": false},
		"search":                        map[string]any{"suggest_enabled": false},
		"safebrowsing":                  map[string]any{"enabled": false, "enhanced": false},
		"translate":                     map[string]any{"enabled": false},
		"alternate_error_pages":         map[string]any{"enabled": false},
		"signin":                        map[string]any{"allowed": false},
		"spellcheck":                    map[string]any{"dictionaries": []string{}},
		"browser":                       map[string]any{"enable_spellchecking": false},
		"download":                      map[string]any{"prompt_for_download": false},
		"profile":                       map[string]any{"default_content_setting_values": deny, "password_manager_enabled": false},
		"enable_do_not_track":           false,
		"custom_handlers":               map[string]any{"enabled": false},
		"printing":                      map[string]any{"enabled": false}, // its window would hold up the page for good
	})
}

// prepare fills Home with what the browser needs before it starts.
func (c Config) prepare(proof string) error {
	for _, dir := range []string{"profile", "profile/Default", "tmp", "config", "cache"} {
		if err := os.Mkdir(filepath.Join(c.Home, dir), 0o700); err != nil {
			return err
		}
	}
	prefs, err := preferences()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Home, "profile", "Default", "Preferences"), prefs, 0o600); err != nil {
		return err
	}
	if err := c.writeRules(proof); err != nil {
		return err
	}
	if c.TrustedCA == nil || c.PolicyDir == "" {
		return nil
	}
	ca, err := c.authority()
	if err != nil {
		return err
	}
	policy, err := json.Marshal(map[string]any{"CACertificates": []string{base64.StdEncoding.EncodeToString(ca.Raw)}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.PolicyDir, "chaperone.json"), policy, 0o644)
}

// made lists what prepare and the programs make in Home; Close removes it.
var made = []string{uploadDir, "profile", "rules", "tmp", "config", "cache", "xauthority", ".pki", ".local", ".config", ".cache"}

// environment is all that the browser inherits (EPH-01).
func (c Config) environment(display string) []string {
	env := []string{
		"HOME=" + c.Home, "TMPDIR=" + filepath.Join(c.Home, "tmp"), "PATH=/usr/bin:/bin", "LANG=C.UTF-8",
		"XDG_CONFIG_HOME=" + filepath.Join(c.Home, "config"), "XDG_CACHE_HOME=" + filepath.Join(c.Home, "cache"),
	}
	if display != "" {
		env = append(env, "DISPLAY="+display, "XAUTHORITY="+filepath.Join(c.Home, "xauthority"))
	}
	return env
}
