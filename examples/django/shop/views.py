import os

import requests
from django.http import HttpResponse
from django.shortcuts import redirect, render

URL = os.environ["MEDIABUCKET_URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['MEDIABUCKET_TOKEN']}"}


def with_width(url, width):
    # The service chooses a size for each width; a link of a private bucket has parameters already.
    return f"{url}{'&' if '?' in url else '?'}w={width}"


def pictures(request):
    if request.method == "POST":
        file = request.FILES["file"]
        files = {"file": (file.name, file, file.content_type)}
        response = requests.post(f"{URL}/api/media", headers=HEADERS, files=files)
        if not response.ok:
            return HttpResponse(response.json()["detail"], status=response.status_code)
        return redirect("/")
    params = {"kind": "image", "order": "newest", "urls": "signed"}
    response = requests.get(f"{URL}/api/items", headers=HEADERS, params=params)
    response.raise_for_status()
    items = response.json()["data"]
    for item in items:
        item["src"] = with_width(item["url"], 1600)
        item["srcset"] = ", ".join(f"{with_width(item['url'], width)} {width}w" for width in (400, 1600))
    return render(request, "pictures.html", {"pictures": items})
