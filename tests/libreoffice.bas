' What `libreoffice.py` tells LibreOffice to do. It sends a byte when a file of commands is written, and
' gets back a line: what went wrong, or nothing. A command is a line, its fields apart by tabs.

Sub Main(port, commands)
  Dim heard() As Byte
  On Error GoTo gone
  connector = createUnoService("com.sun.star.connection.Connector")
  link = connector.connect("socket,host=127.0.0.1,port=" & port)
  Do While link.read(heard, 1) = 1
    link.write(Codes(Fault(commands) & Chr(10)))
  Loop
gone:
  StarDesktop.terminate()
End Sub

Function Codes(text)
  Dim found() As Byte
  ReDim found(Len(text) - 1) As Byte
  For k = 1 To Len(text)
    found(k - 1) = Asc(Mid(text, k, 1)) And 127
  Next
  Codes = found
End Function

Function Fault(commands)
  On Error GoTo wrong
  Dim cells(9999), before(9999)
  n = 0
  files = createUnoService("com.sun.star.ucb.SimpleFileAccess")
  lines = createUnoService("com.sun.star.io.TextInputStream")
  lines.setInputStream(files.openFileRead(commands))
  lines.setEncoding("UTF-8")
  Do Until lines.isEOF()
    f = Split(lines.readLine(), Chr(9))
    Select Case f(0)
    Case "open"
      book = StarDesktop.loadComponentFromURL(f(1), "_blank", 0, Array(Property("Hidden", True)))
      If IsNull(book) Then
        Fault = "cannot open " & f(1)
        Exit Function
      End If
    Case "type"
      cells(n) = book.Sheets.getByName(f(1)).getCellByPosition(CLng(f(3)), CLng(f(2)))
      before(n) = Held(cells(n))
      Enter cells(n), f(4), Plain(f(5))
      n = n + 1
    Case "put back"
      Do While n > 0
        n = n - 1
        Enter cells(n), before(n)(0), before(n)(1)
      Loop
    Case "compute"
      book.calculateAll()
    Case "save"
      book.storeToURL(f(1), Array(Property("FilterName", f(2)), Property("FilterOptions", f(3))))
    Case "close"
      book.close(True)
    End Select
  Loop
  lines.closeInput()
  Fault = ""
  Exit Function
wrong:
  Fault = "line " & Erl & ": " & Join(Split(Error, Chr(10)), " ")
End Function

Function Held(cell)  ' the kind of what a cell holds, and what it is
  Select Case cell.Type
  Case com.sun.star.table.CellContentType.VALUE
    Held = Array("number", cell.Value)
  Case com.sun.star.table.CellContentType.TEXT
    Held = Array("text", cell.String)
  Case com.sun.star.table.CellContentType.FORMULA
    Held = Array("formula", cell.Formula)
  Case Else
    Held = Array("nothing", "")
  End Select
End Function

Sub Enter(cell, kind, value)
  Select Case kind
  Case "number"
    If VarType(value) = V_STRING Then cell.Value = Val(value) Else cell.Value = value
  Case "text"
    cell.String = value
  Case "formula"
    cell.Formula = value
  Case "nothing"
    cell.clearContents(23)  ' numbers, dates, texts and formulas
  End Select
End Sub

Function Plain(field)  ' with what would end a field or a line of commands
  Plain = field
  For k = 9 To 13
    Plain = Join(Split(Plain, Chr(&HE000 + k)), Chr(k))
  Next
End Function

Function Property(name, value)
  Property = createUnoStruct("com.sun.star.beans.PropertyValue")
  Property.Name = name
  Property.Value = value
End Function
