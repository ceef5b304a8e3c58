import './restrict-scripts.ts'
import { effect } from '@preact/signals'
import { render } from 'preact'
import { App } from './app.tsx'
import { createPreferences } from './preferences.tsx'
import { takeCallback } from './session/issuer.ts'
import { createSession } from './session/session.ts'
import { locale } from './strings/locale.ts'
import { showLanguage } from './strings.ts'
import './styles/base.css'
import './styles/controls.css'
import './styles/filters.css'
import './styles/sign-in.css'
import './styles/shell.css'
import './styles/listing.css'
import './styles/middle-name.css'
import './styles/tiles.css'
import './styles/tile-check.css'
import './styles/placeholders.css'
import './styles/timeline.css'
import './styles/footer.css'
import './styles/labels.css'
import './styles/tokens.css'
import './styles/webhooks.css'
import './styles/buckets.css'
import './styles/trash.css'
import './styles/selection-bar.css'
import './styles/dialogs.css'
import './styles/uploads.css'
import './styles/viewer.css'
import './styles/slides.css'
import './styles/details.css'
import './styles/touch.css'

// Before the first request, whose Referer could contain it.
const callback = takeCallback()

const root = document.getElementById('app')
if (root) {
  const preferences = createPreferences()
  const session = createSession(callback)
  void session.resume()
  effect(() => {
    document.documentElement.dataset['theme'] = preferences.theme.value
  })
  let drawn = false
  effect(() => {
    void showLanguage(preferences.language.value).then(() => {
      if (!drawn) render(<App session={session} preferences={preferences} />, root)
      drawn = true
      document.documentElement.lang = locale.current
    })
  })
}
