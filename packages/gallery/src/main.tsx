import './restrict-scripts.ts'
import { render } from 'preact'
import { App } from './app.tsx'
import { createSession } from './session/session.ts'
import './styles/base.css'
import './styles/controls.css'
import './styles/sign-in.css'
import './styles/shell.css'
import './styles/listing.css'
import './styles/tiles.css'
import './styles/timeline.css'
import './styles/footer.css'
import './styles/pager.css'
import './styles/selection-bar.css'
import './styles/dialogs.css'
import './styles/uploads.css'
import './styles/viewer.css'
import './styles/slides.css'
import './styles/details.css'

const root = document.getElementById('app')
if (root) {
  const session = createSession()
  void session.resume()
  render(<App session={session} />, root)
}
