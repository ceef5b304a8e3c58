import type { LabelKey } from '@mediabucket/client'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { IconButton } from '../components/controls.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import type { LabelMistake } from './read-labels.ts'

/** Values of each key that are offered: the most frequent ones. */
const offeredValues = 50

interface LabelFieldsProps {
  readonly legend: string
  /** The labels at first. */
  readonly labels?: Readonly<Record<string, string>>
  /** Whether there is one label, which cannot be removed. */
  readonly single?: boolean
  readonly readOnly?: boolean
  /** Another object for each mistake, whose field gets the focus. */
  readonly mistake: LabelMistake | null
}

interface Row {
  readonly id: number
  readonly key: string
  readonly value: string
}

/** Fields for the keys and values of labels, named `label-key` and `label-value`, which offer those of the bucket. */
export function LabelFields(props: LabelFieldsProps) {
  const { legend, labels = {}, single = false, readOnly = false, mistake } = props
  const id = useId()
  const known = useKnownLabels()
  const group = useRef<HTMLFieldSetElement>(null)
  const [rows, setRows] = useState<readonly Row[]>(() => rowsOf(labels))
  const nextId = useRef(rows.length)
  /** The row whose key gets the focus when it is drawn; -1 for the button that adds a row. */
  const focusing = useRef<number | null>(null)

  const fieldOf = (row: number, field: LabelMistake['field']) =>
    group.current?.querySelectorAll<HTMLInputElement>(`input[name="label-${field}"]`)[row]
  useLayoutEffect(() => {
    if (mistake) fieldOf(mistake.row, mistake.field)?.focus()
  }, [mistake])
  useLayoutEffect(() => {
    const row = focusing.current
    focusing.current = null
    if (row === null) return
    const target = row < 0 ? group.current?.querySelector<HTMLElement>('.add-label') : fieldOf(row, 'key')
    target?.focus()
  }, [rows])

  const change = (row: Row, changes: Partial<Row>) =>
    setRows(rows.map((other) => (other.id === row.id ? { ...row, ...changes } : other)))
  const add = () => {
    focusing.current = rows.length
    setRows([...rows, { id: nextId.current++, key: '', value: '' }])
  }
  const remove = (row: Row) => {
    focusing.current = -1
    setRows(rows.filter(({ id }) => id !== row.id))
  }
  const mistakeId = `${id}-mistake`
  const marks = (row: number, field: LabelMistake['field']) =>
    mistake?.row === row && mistake.field === field
      ? { 'aria-invalid': true, 'aria-describedby': mistakeId }
      : {}
  return (
    <fieldset ref={group} class={single ? 'label-fields single' : 'label-fields'}>
      <legend>{legend}</legend>
      {rows.length > 0 && (
        <p class="label-row muted" aria-hidden="true">
          <span>{strings.labels.key}</span>
          <span>{strings.labels.value}</span>
        </p>
      )}
      {rows.map((row, index) => (
        <div key={row.id} class="label-row">
          <input
            type="text"
            name="label-key"
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            list={`${id}-keys`}
            aria-label={single ? strings.labels.key : strings.labels.keyOf(index + 1)}
            value={row.key}
            readOnly={readOnly}
            onInput={({ currentTarget }) => change(row, { key: currentTarget.value })}
            {...marks(index, 'key')}
          />
          <input
            type="text"
            name="label-value"
            autocomplete="off"
            list={`${id}-values-${row.id}`}
            aria-label={single ? strings.labels.value : strings.labels.valueOf(index + 1)}
            value={row.value}
            readOnly={readOnly}
            onInput={({ currentTarget }) => change(row, { value: currentTarget.value })}
            {...marks(index, 'value')}
          />
          <datalist id={`${id}-values-${row.id}`}>
            {known
              .find(({ key }) => key === row.key.trim().toLowerCase())
              ?.values.map(({ value }) => (
                <option key={value} value={value} />
              ))}
          </datalist>
          {!single && (
            <IconButton
              icon="close"
              label={strings.labels.remove(row.key || `${index + 1}`)}
              onClick={() => remove(row)}
            />
          )}
        </div>
      ))}
      <datalist id={`${id}-keys`}>
        {known.map(({ key }) => (
          <option key={key} value={key} />
        ))}
      </datalist>
      {!single && (
        <button type="button" class="button small add-label" aria-disabled={readOnly} onClick={add}>
          {strings.labels.add}
        </button>
      )}
      <p id={mistakeId} class="message bad" role="alert">
        {mistake && strings.labels[mistake.reason](mistake.text)}
      </p>
    </fieldset>
  )
}

/** The given labels; an empty row if there are none. */
function rowsOf(labels: Readonly<Record<string, string>>): Row[] {
  const pairs = Object.entries(labels)
  return (pairs.length > 0 ? pairs : [['', ''] as const]).map(([key, value], id) => ({ id, key, value }))
}

/** The labels of the bucket; none until they are loaded, and if they cannot be: people can type all of them. */
function useKnownLabels(): readonly LabelKey[] {
  const { client } = useGallery()
  const [known, setKnown] = useState<readonly LabelKey[]>([])
  useEffect(() => {
    let unmounted = false
    client.labels({ limit: offeredValues }).then(
      (found) => void (!unmounted && setKnown(found)),
      () => undefined,
    )
    return () => {
      unmounted = true
    }
  }, [client])
  return known
}
