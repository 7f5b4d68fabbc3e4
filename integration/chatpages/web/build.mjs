// Bundles the pages into dist, with the licences of what is bundled: `npm ci && npm run bundle`.
import {build} from 'esbuild'
import {cpSync, readFileSync, rmSync, writeFileSync} from 'node:fs'

const styles = {
  'deep-chat': '',
  'assistant-ui': '@import "@assistant-ui/react-ui/styles/index.css"; @import "@assistant-ui/react-ui/styles/markdown.css";',
}

rmSync('dist', {recursive: true, force: true})
const packages = new Set()
const bundle = async (options) => {
  const {metafile} = await build({
    bundle: true, minify: true, legalComments: 'none', target: 'es2022', format: 'iife', metafile: true, logLevel: 'info',
    define: {'process.env.NODE_ENV': '"production"'}, jsx: 'automatic', ...options,
  })
  for (const file of Object.keys(metafile.inputs)) {
    const folder = file.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0]
    if (folder) packages.add(folder)
  }
}
for (const [name, style] of Object.entries(styles)) {
  const entry = name === 'assistant-ui' ? 'src/assistant-ui.jsx' : 'src/deep-chat.js'
  await bundle({entryPoints: {app: entry}, outdir: `dist/${name}`})
  await bundle({stdin: {contents: style, loader: 'css', resolveDir: '.'}, outfile: `dist/${name}/app.css`})
  for (const file of ['index.html', 'frame.css']) cpSync(`src/${file}`, `dist/${name}/${file}`)
}

const licences = [...packages].sort().map((folder) => {
  const {name, version, license} = JSON.parse(readFileSync(`${folder}/package.json`))
  let text = license
  for (const file of ['LICENSE', 'LICENSE.md', 'license', 'LICENSE.txt']) {
    try {
      text = readFileSync(`${folder}/${file}`, 'utf8').trim()
      break
    } catch (error) {
      if (error.code !== 'ENOENT') throw error
    }
  }
  return `${name} ${version}\n\n${text}\n`
})
writeFileSync('dist/licences.txt', licences.join('\n' + '-'.repeat(80) + '\n\n'))
