<?php

return ['url' => env('MEDIABUCKET_URL'), 'token' => env('MEDIABUCKET_TOKEN')];
