import { strings } from './strings.ts'

export function App() {
  return <h1>{strings.product}</h1>
}
