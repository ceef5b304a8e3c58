<?php

// Serves the routes and views of an app with the framework of Debian (php-laravel-framework), without the files that `composer create-project`
// adds: `php -S 127.0.0.1:PORT laravel.php` in the directory of the app.

require '/usr/share/php/GuzzleHttp/autoload.php';
require '/usr/share/php/Illuminate/autoload.php';

use Illuminate\Config\Repository;
use Illuminate\Foundation\Application;
use Illuminate\Http\Request;
use Illuminate\Session\ArraySessionHandler;
use Illuminate\Session\Store;
use Illuminate\Support\Facades\Facade;

$directory = getcwd();
$app = new Application($directory);
$app->instance('config', new Repository([
    'view' => ['paths' => ["$directory/resources/views"], 'compiled' => $directory],
    'mediabucket' => require "$directory/config/mediabucket.php",
]));
Facade::setFacadeApplication($app);
$app->register(Illuminate\Filesystem\FilesystemServiceProvider::class);
$app->register(Illuminate\View\ViewServiceProvider::class);
// The field of a form against forged requests needs a session.
$session = new Store('session', new ArraySessionHandler(10));
$session->start();
$app->instance('session', $session);
$request = Request::capture();
$request->setLaravelSession($session);
$app->instance('request', $request);
require "$directory/routes/web.php";
$app['router']->dispatch($request)->send();
