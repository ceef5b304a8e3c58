<?php

use Illuminate\Http\Request;
use Illuminate\Support\Facades\Http;
use Illuminate\Support\Facades\Route;

Route::get('/', function () {
    $query = ['kind' => 'image', 'order' => 'newest', 'urls' => 'signed'];
    $response = Http::withToken(config('mediabucket.token'))->get(config('mediabucket.url').'/api/items', $query);

    return view('pictures', ['pictures' => $response->throw()->json('data')]);
});

Route::post('/', function (Request $request) {
    $file = $request->file('file');
    $type = ['Content-Type' => $file->getClientMimeType()];
    Http::withToken(config('mediabucket.token'))
        ->attach('file', fopen($file->getPathname(), 'r'), $file->getClientOriginalName(), $type)
        ->post(config('mediabucket.url').'/api/media')
        ->throw();

    return redirect('/');
});
