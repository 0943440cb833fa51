"""Photograph the calculator of the built book for the README: the answer to one question, as a reader sees it."""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).resolve().parents[1] / "book" / "site" / "static" / "calculator.png"
QUESTION = "#ask?mode=step&model=Llama%203.3%2070B&machine=4x%20H100%20SXM&weights=fp8&batch=32&context=8k&goal=15%20ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=lambda p: Path(p).resolve(), help="the built book")
    parser.add_argument("--browser", required=True, help="the browser's program")
    args = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=args.browser, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        page.goto((args.root / "book" / "calculator.html").as_uri() + QUESTION)
        page.wait_for_function("document.querySelector('.ask .stack')")
        page.locator(".ask").screenshot(path=PICTURE, style=".ask{padding:.6rem;background:#fff}")
        browser.close()
    print(f"{PICTURE.name}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
