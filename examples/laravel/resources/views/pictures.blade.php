<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>Pictures</title>
  </head>
  <body>
    <form method="post" enctype="multipart/form-data">
      @csrf
      <input type="file" name="file" accept="image/*" aria-label="Picture" required>
      <button>Upload</button>
    </form>
    @foreach ($pictures as $picture)
      @php
        // The service chooses a size for each width; a link of a private bucket has parameters already.
        $start = $picture['url'].(str_contains($picture['url'], '?') ? '&' : '?').'w=';
      @endphp
      <img
        src="{{ $start }}1600"
        srcset="{{ $start }}400 400w, {{ $start }}1600 1600w"
        sizes="(min-width: 60rem) 25vw, 100vw"
        width="{{ $picture['width'] }}"
        height="{{ $picture['height'] }}"
        alt="{{ $picture['alt_text'] ?? $picture['filename'] }}"
      >
    @endforeach
  </body>
</html>
