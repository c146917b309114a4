"""A real browser without a window, where there is one."""

import os
import shutil
import tempfile
from contextlib import contextmanager

import pytest

REQUIRED = "SOFTCOUNT_REQUIRE_BROWSER"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip


def missing():
    """What a browser test lacks on this machine; empty if nothing."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    try:
        import selenium  # noqa: F401
    except ImportError:
        lacking.append("selenium")
    return ", ".join(lacking)


def require():
    """Skips where there is no browser, unless the environment says that there must be one."""
    if missing() and os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, and this machine lacks {missing()}")
    if missing():
        pytest.skip(f"needs {missing()} (apt-get install chromium chromium-driver; pip install selenium)")


@contextmanager
def open_browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


def look(driver, page, *, width=1280, height=900, scheme="light"):
    """Opens a file at a size, in a colour scheme; fails if the browser has anything to complain about."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page.resolve().as_uri())
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert driver.get_log("browser") == []
