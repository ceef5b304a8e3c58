import '../restrict-scripts.ts'
import { render } from 'preact'
import { createPreferences } from '../preferences.tsx'
import { locale } from '../strings/locale.ts'
import { loadTexts, showLanguage, strings } from '../strings.ts'
import '../styles/base.css'
import '../styles/controls.css'
import '../styles/uploads.css'
import '../styles/upload-page.css'
import { createUploadLink, takeToken } from './upload-link.ts'
import { UploadPage } from './upload-page.tsx'

// Before the first request.
const token = takeToken()

const root = document.getElementById('app')
if (root) {
  const { theme, language } = createPreferences()
  document.documentElement.dataset['theme'] = theme.value
  const link = createUploadLink(token)
  void link.open()
  const texts = Promise.all([showLanguage(language.value), loadTexts('links', 'uploads')])
  void texts.then(
    () => {
      document.documentElement.lang = locale.current
      render(<UploadPage link={link} />, root)
    },
    () => render(<p role="alert">{strings.notLoaded}</p>, root),
  )
  // Another link was opened in this tab.
  addEventListener('hashchange', () => location.reload())
}
